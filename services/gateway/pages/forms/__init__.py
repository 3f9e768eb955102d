"""Forms as they were sent: what is wrong with them, and the job specs that they come to."""
