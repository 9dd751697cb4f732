"""The planner: threshold or budget from the other and the population's numbers."""

from linsketch.planner.forecast import Forecast, plan_campaign, plan_histogram

__all__ = ["Forecast", "plan_campaign", "plan_histogram"]
