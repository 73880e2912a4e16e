// Everything is in device.hpp.
