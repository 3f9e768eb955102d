"""What the text of a reply says, before a kind of answer is looked for in it."""
