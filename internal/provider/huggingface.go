package provider

// huggingFaceHeaders are those of the Hugging Face router, as recorded: what
// remains of the minute, the hour and the day, and no limit.
var huggingFaceHeaders = []limitHeaders{
	spanned(requests, "X-Ratelimit", "-Requests", "-Minute"),
	spanned(requests, "X-Ratelimit", "-Requests", "-Hour"),
	spanned(requests, "X-Ratelimit", "-Requests", "-Day"),
	spanned(tokens, "X-Ratelimit", "-Tokens", "-Hour"), // the minute's are Mistral's
	spanned(tokens, "X-Ratelimit", "-Tokens", "-Day"),
}
