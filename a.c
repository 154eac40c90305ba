#include "trained_prepared.h"
