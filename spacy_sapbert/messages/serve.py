"""Errors and warnings of the service."""


class ServeErrors:
    E450 = (
        "Expected `--host` to be an address of this machine alone, such as 127.0.0.1, "
        "but got {host}, which others reach. Pass `--token-file`, so that they need a "
        "token, or `--allow-remote` to serve all who reach the port."
    )
    E451 = (
        "Expected to listen on {host} port {port}, but the system refused: {reason}. "
        "Pass another `--port` (0 = any that is free) or another `--host`."
    )
    E452 = (
        "{path}: Expected one token, or lines of a role (reader, reviewer or admin), a "
        "token and, if wanted, a name, each token of at least {least} letters, digits, "
        "`-`, `_` or `.` and only once, but got something else. Write tokens with "
        "`openssl rand -hex 32`."
    )
    E453 = (
        "Expected `Host` to be localhost or an IP address, but got another name. "
        "Start the service with `--allow-host NAME` if it is to have this name."
    )
    E454 = (
        "Expected a request of the same origin, but it comes from a page of another. "
        "Start the service with `--allow-origin` and that origin, if it is to be used "
        "by it."
    )
    E455 = (
        "Expected the token of the service, but got none or another. Send it as "
        "`Authorization: Bearer TOKEN`."
    )
    E456 = (
        "Expected a body of at most {limit:,} bytes, but got more. Send fewer texts in "
        "a request."
    )
    E457 = (
        "Expected {expected}, but got something else. See /openapi.json, or the schema "
        "of the tool."
    )
    E458 = (
        "Expected at most {limit:,} {what} in a request, but got {got:,}. Send several "
        "requests."
    )
    E459 = (
        "Expected at most {limit} requests of a client at once, but got more. Send the "
        "next when one is answered."
    )
    E460 = (
        "Expected a service with room in its queue, but it is full or ends. Send the "
        "request again later."
    )
    E461 = (
        "Expected an answer within {seconds:g} seconds, but it took longer. Send less "
        "in a request, or the request again later."
    )
    E462 = (
        "Expected a whole body within {seconds:g} seconds, but it is still incomplete. "
        "Send the request again."
    )
    E463 = "Expected an id of the knowledge base, but got another. Use /search."
    E464 = "Expected a path and a method of /openapi.json, but got others."
    E465 = (
        "Expected the service to answer, but it failed. Report the line of its log "
        "with the same `request`."
    )
    E466 = (
        "{path}: Expected a file of reviews that can be written, but got: {reason}. "
        "Pass another `--reviews`."
    )
    E467 = (
        "Expected a service with reviews, but it has none. Start it with `--reviews "
        "FILE`."
    )
    E468 = (
        "Expected one teaching at a time, but one is running. GET /reviews/teach "
        "returns how far it is."
    )
    E469 = (
        "Expected a taught knowledge base, but there is none. Send a request to "
        "/reviews/teach first."
    )
    E480 = (
        "Expected a code and a code system of the knowledge base, but got others. "
        "/fhir/metadata?mode=terminology lists the code systems."
    )
    E481 = (
        "Expected at most {limit:,} codes in an answer, but there are {got:,}. Send "
        "`count` and `offset`."
    )
    E482 = (
        "Expected a request without the parameter `{name}`, which this service does "
        "not have, but got it. Leave it out."
    )
    E483 = (
        "Expected a client that sends and reads JSON of FHIR, but got another format. "
        "Send and accept `application/fhir+json`."
    )
    E484 = (
        "Expected a vocabulary whose codes the knowledge base has, but got another. It "
        "has: {known}."
    )
    E485 = (
        "Expected a token of the role {needed}, but got one of the role {role}. Ask "
        "who runs the service for another token."
    )
    E486 = (
        "Expected the reviewer's name of the token, but got another. GET /access "
        "returns the name."
    )
    E487 = (
        "Expected `--limit NAME=NUMBER` with one of {names} and a positive whole "
        "number, but got {got!r}. Correct it."
    )
    E488 = (
        "Expected at most {limit:,} documents to review, but the next is one more. "
        "Delete documents, or start the service with a higher `--limit kept=NUMBER`."
    )
    E489 = (
        "Expected `--public-url` to be an address such as "
        "https://terms.example/sapbert, but got {got!r}. Correct it."
    )
    E490 = (
        "Expected the file of reviews at its path, but it was moved, deleted or "
        "replaced while it is open, so nothing is written. Put it back, or start the "
        "service again."
    )
    E491 = (
        "Expected to write the file of reviews, but got: {reason}. Make room on its "
        "disk or end what uses it, and send the request again."
    )
    E492 = (
        "Expected `--reviews` with `--documents`, but got none. Pass `--reviews FILE`, "
        "which keeps the documents and what is decided on them."
    )
    E493 = (
        "Expected a system that can fork with `--workers`, but this one cannot. Leave "
        "out `--workers`."
    )
    E494 = (
        "Expected all processes of the service to run until it is stopped, but one "
        "ended. Its last line in the log has the cause."
    )
    E495 = (
        "Expected a service of one process for teaching, versions and counters, but it "
        "has several. Start it without `--workers`."
    )
    E536 = (
        "Expected documents with at most {limit:,} punctuation characters in a row, "
        "but {id!r} has {run:,}: spaCy's tokenizer would need hours. Remove them, or "
        "pass the document as a `.spacy` file, which has tokens."
    )
