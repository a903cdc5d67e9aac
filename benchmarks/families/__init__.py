"""What verdicts and families give: events, families, comparisons, bytes, speed."""
