"""What people call. Stands at the top of the repo, and installs as `pohp_neurd.run_scripts`: `pohp-neurd`."""
