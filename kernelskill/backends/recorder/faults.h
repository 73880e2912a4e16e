// Faults of candidate code, written to the transcript before the process ends.
#pragma once

namespace recorder {

void report_faults();

}  // namespace recorder
