package provider

// mistralHeaders are the three generations of Mistral's headers, as recorded from
// 2025 to 2026. Its minute is one of the clock, so the reset is the end of a window
// (calc, from one response). Characters and seconds of audio are not read.
var mistralHeaders = []limitHeaders{
	{
		metric: tokens, limit: "Ratelimitbysize-Limit", remaining: "Ratelimitbysize-Remaining",
		reset: "Ratelimitbysize-Reset", window: true,
	},
	spanned(tokens, "X-Ratelimitbysize", "", "-Minute"),
	spanned(tokens, "X-Ratelimitbysize", "", "-Month"),
	spanned(tokens, "X-Ratelimit", "-Tokens", "-Minute"),
	spanned(tokens, "X-Ratelimit", "-Tokens", "-Month"),
	spanned(requests, "X-Ratelimit", "-Req", "-Minute"),
	spanned(requests, "X-Ratelimit", "-Req", "-10-Second"),
}

// spanned names the headers of a limit whose span is part of their names.
func spanned(m metric, prefix, what, span string) limitHeaders {
	return limitHeaders{metric: m, limit: prefix + "-Limit" + what + span, remaining: prefix + "-Remaining" + what + span}
}

// mistralCapacity is the code for a tier whose capacity is exceeded (unverified). A
// limit is {"object":"error","type":"rate_limited","code":"1300"}.
const mistralCapacity = "3505"
