package wire_test

import "quotabroker/wire"

var errorCodes = []wire.Code{
	wire.CodeBadRequest, wire.CodeForbidden, wire.CodeUnknownSource, wire.CodeUnknownPool, wire.CodeUnknownLease,
	wire.CodeAlreadySettled, wire.CodePayloadTooLarge, wire.CodeInternal, wire.CodeUnavailable,
}
