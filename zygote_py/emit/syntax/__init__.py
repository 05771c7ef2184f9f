"""Parts of the text: names and imports, what stands alone, the parts of containers."""
