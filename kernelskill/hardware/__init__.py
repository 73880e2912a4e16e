"""Facts of GPUs and their occupancy."""
