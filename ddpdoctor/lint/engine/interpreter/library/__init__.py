"""What a library's names do when they are called, by the tables of `engine/libraries/`."""
