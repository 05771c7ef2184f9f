"""Called derivatives: the state of a derivative function, pullbacks, cotangents, and flattened structures."""
