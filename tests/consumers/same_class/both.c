// In C the names of the two models' functions are the same.
#include FIRST
#include SECOND
