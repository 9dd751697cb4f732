"""Durable records: the transcript of a campaign, and ledgers of what must not happen twice."""
