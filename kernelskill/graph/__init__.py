"""The LangGraph graph of one round."""
