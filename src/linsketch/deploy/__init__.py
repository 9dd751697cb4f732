"""Campaigns on engines that people already run: Flower (federation) and Dask (partitioned data)."""
