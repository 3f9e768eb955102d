"""One reader of answers in free text, layered from strict to lenient."""
