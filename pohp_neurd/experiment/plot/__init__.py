"""Pictures. The only package that imports matplotlib; it reads figures that others have computed."""
