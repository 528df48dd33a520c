//! Series of memory readings to a verdict, a slope with its interval and a forecast.
