"""Mathematical functions: sums, products, differences, extrema, and discrete convolution."""
