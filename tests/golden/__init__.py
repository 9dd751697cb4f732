"""What the code gave before it was rebuilt: the same bytes, tasks and lists, for good."""
