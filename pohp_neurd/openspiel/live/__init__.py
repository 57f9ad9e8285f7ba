"""Games too large for arrays, played live through pyspiel: `game`, `play`, `train`, `match`."""
