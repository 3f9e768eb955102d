"""What is found of two models: of the second one against the first."""

BETTER, WORSE, EQUIVALENT, NO_DIFFERENCE, UNDECIDED = "better", "worse", "equivalent", "no_difference", ""
