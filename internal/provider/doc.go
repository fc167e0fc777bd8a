// Package provider reads what a provider of language models answered and says it
// in the words of package wire: limits and waits from the headers of a response
// ([Headers]), the kind of a failure ([Error]), what was counted in a body
// ([Body]) or in a stream of server-sent events ([Stream]).
//
// It is pure: no clock, no network, no state but a Stream's. It trusts nothing it
// reads: whatever the input, it does not panic, its memory is bounded, and its
// figures pass wire's Validate.
//
// There is a file for each family of providers, with what is peculiar to it:
//
//	openai       OpenAI and those who speak like it: vLLM, SGLang, DeepSeek, xAI
//	azure        Azure OpenAI, GitHub Models
//	anthropic    Anthropic
//	gemini       Gemini API, Vertex AI
//	bedrock      Amazon Bedrock
//	groq         Groq
//	mistral      Mistral
//	together     Together
//	openrouter   OpenRouter, and others with one bare limit
//	huggingface  the Hugging Face router
//	cohere       Cohere
//
// Nobody says which family answered: names of headers and fields tell, and where
// two families use the same name they mean the same by it or the values tell.
// vLLM and SGLang have no limiter, they queue (PR vllm#22805); their errors and
// usage are OpenAI's.
//
// # Sources
//
// A rule names where it comes from: the provider's documentation page (doc), a
// public issue or pull request (as repository#number), arithmetic on recorded
// responses (calc), the source of an SDK or a proxy (SDK), or, where nothing
// better was to be had, general knowledge (unverified). The recorded responses
// are in testdata/headers, testdata/streams and testdata/usage.
package provider
