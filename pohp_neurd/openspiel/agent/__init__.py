"""NeuRD-CIX as an OpenSpiel agent: `agent`, `acting`, `buffer` of episodes, `learning` with its settings."""
