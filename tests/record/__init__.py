"""Published outputs of real models through the product: their authors' accuracies under their rule, and ours."""
