"""A linsketch campaign on Flower."""
