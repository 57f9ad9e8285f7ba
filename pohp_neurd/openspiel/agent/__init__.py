"""NeuRD-CIX as an OpenSpiel agent: `agent`, its `settings`, its `buffer` of episodes, and `acting`."""
