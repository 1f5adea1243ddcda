"""What the clone bounds share: the law of the number of clones, the families of randomizers, the search over users."""
