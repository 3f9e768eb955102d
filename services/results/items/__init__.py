"""Items as they are filtered, read, scored and annotated."""
