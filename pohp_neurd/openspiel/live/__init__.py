"""Games too large for arrays, played live through pyspiel: `game`, `players`, `play`, `train`, `match`."""
