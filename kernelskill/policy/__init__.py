"""What ranks a slate."""
