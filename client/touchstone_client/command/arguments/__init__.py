"""Arguments that several verbs share, and how a verb is declared."""
