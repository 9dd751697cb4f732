"""What people and machines are shown of a campaign."""
