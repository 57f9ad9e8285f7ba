"""The bandit setting: Theorem 1's black-box reduction, and its bound put to the test."""
