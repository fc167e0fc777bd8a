package provider

// Groq's headers are OpenAI's (doc): requests are always per day and tokens per
// minute, which the names do not say, and its limits on input and output tokens
// appear in no header.
//
// An error of Groq's is told in OpenAI's sentence, a request that is too large with a
// status of 413 or, as recorded, with 429 and a hint that does not help.
