"""Whether one of two models is better, decided while their answers come in. Pure."""
