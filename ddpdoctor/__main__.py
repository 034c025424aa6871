"""`python -m ddpdoctor`, which is what a launcher starts."""

from ddpdoctor.cli import main

main()
