"""What runs leave behind: folders, rows, statistics and figures. Figures alone load matplotlib."""
