# Included by the root: installation and package files.
