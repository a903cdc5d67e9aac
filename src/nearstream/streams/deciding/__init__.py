"""From verdicts to decisions for crawlers, which fall with the state on which they rest."""
