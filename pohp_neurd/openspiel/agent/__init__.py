"""NeuRD-CIX as an OpenSpiel agent: `agent`, its `settings`, `acting`, `buffer` of episodes, `learning`."""
