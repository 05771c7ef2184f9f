"""The compiler's stages in order, from a request to emitted source, for gradients and other transforms."""
