"""The tools that come with the agent."""
