"""From the joint function to Python source."""
