"""What people and machines are shown of a campaign: a typed outcome, a page, a journal."""
