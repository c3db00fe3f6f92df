-- Posts the lines of the file that BENCH_BODIES names, in turn, and prints one line of figures (bench/http/wrk.c).
local requests, next_request = {}, 0

function init()
    local name = os.getenv("BENCH_BODIES")
    if not name or name == "" then
        requests[1] = wrk.format("GET")
        return
    end
    for line in io.lines(name) do
        requests[#requests + 1] = wrk.format("POST", nil, {["Content-Type"] = "application/json"}, line)
    end
end

function request()
    next_request = next_request % #requests + 1
    return requests[next_request]
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format("figures %d %d %d %d %d", summary.requests, summary.duration, latency:percentile(50),
        latency:percentile(99), errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
