-- Requests the targets in a file, one per line, again and again in the same order. Prints the results as JSON.
local requests, at = {}, 0

function init(args)
  for target in io.lines(args[1]) do requests[#requests + 1] = wrk.format("GET", target) end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"microseconds":%d,"bytes":%d,"p50":%d,"p99":%d,"failed":%d,"refused":%d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
