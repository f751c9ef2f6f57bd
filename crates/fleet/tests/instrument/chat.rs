//! Scenarios in which clients send, over every transport.

use crate::native_server::NativeServer;
use crate::plans::{NO_TIME, PINGS, plan, run, with_prober};
use pushlab_fleet::worker::{Allowed, serve};
use pushlab_fleet::{RunError, Threads};
use pushlab_os::clock::monotonic_ns;
use pushlab_wire::stamp::Stamp;
use pushlab_wire::transport::Transport;
use pushlab_workload::messages::{LoadError, Message, Order};
use pushlab_workload::plan::{Phases, Plan, ProberPath, RequestHeaders};
use pushlab_workload::result::LoadResult;
use pushlab_workload::scenario::Scenario;
use pushlab_workload::segment::Segment;
use std::io::{BufRead as _, BufReader, Write as _};

const CHAT: Scenario =
    Scenario::Chat { interval_ms: 100, payload_bytes: 71, payload_bytes_max: None, publishers: None, in_bursts: false };

fn assert_whole(result: &LoadResult, scheduled: u64, receivers: u64, what: impl std::fmt::Display) {
    let errors = &result.errors;
    assert_eq!((result.scheduled, result.published, result.unsent), (scheduled, scheduled, 0), "{what} {errors:?}");
    let counts = (result.expected, result.delivered, result.lost);
    assert_eq!(counts, (scheduled * receivers, scheduled * receivers, 0), "{what} {errors:?}");
    assert_eq!((result.duplicated, result.reordered, result.unknown), (0, 0, 0), "{what} {errors:?}");
    assert_eq!(result.latency.count(), result.delivered, "{what}");
    assert_eq!(result.lateness.count(), scheduled, "{what}");
}

#[test]
fn a_chat_is_whole_over_every_transport() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let result = run(&with_prober(plan(server.address, transport, 5, CHAT), ProberPath::SameTransport));
        assert_whole(&result, 15, 5, transport);
        assert_eq!(result.latency_last.count(), 15, "{transport}");
        assert_eq!(result.response_load.count(), PINGS, "{transport}");
        assert_eq!((result.reconnects, result.connect.count()), (0, 5), "{transport}");
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        assert_eq!(result.requests > 0, !transport.is_bidirectional(), "{transport}");
        assert_eq!(result.requests_publishers, result.requests, "everybody publishes over {transport}");
        assert_eq!(result.latency_own.count(), 15, "{transport}");
        assert!(result.latency_own.quantile(1.0) <= result.latency.quantile(1.0), "{transport}");
        assert!(result.seconds.iter().any(|second| second.latency_own_median_ns.is_some()), "{transport}");
        assert_eq!((result.latency_up.count(), result.deliveries.len()), (0, 0), "nobody asked for marks");
    }
}

#[test]
fn a_subscribed_prober_receives_what_clients_do_and_knows_its_answers() {
    for subscribed in [false, true] {
        let server = NativeServer::start(None);
        let chat = plan(server.address, Transport::WebSocket, 5, CHAT);
        let mut plan = with_prober(chat, ProberPath::SameTransport);
        plan.prober.as_mut().unwrap().subscribed = subscribed;
        let result = run(&plan);
        assert_whole(&result, 15, 5, subscribed);
        assert_eq!(result.response_load.count(), PINGS);
        assert!(result.errors.is_empty(), "{:?}", result.errors);
        let opened = server.asked().into_iter().filter(|asked| asked.what == "GET /ws").map(|asked| asked.channel);
        let with_clients = opened.filter(|channel| *channel == plan.channel).count();
        assert_eq!(with_clients, if subscribed { 6 } else { 5 });
    }
}

#[test]
fn a_subscribed_prober_is_a_client_over_websocket() {
    let server = NativeServer::start(None);
    let [same, http] = [ProberPath::SameTransport, ProberPath::Http];
    let others = [(Transport::Sse, same), (Transport::WebSocketPolling, same), (Transport::WebSocket, http)];
    for (transport, over) in others {
        let mut plan = with_prober(plan(server.address, transport, 5, CHAT), over);
        plan.prober.as_mut().unwrap().subscribed = true;
        let refused = Threads::run(&plan, None, &mut |_| ()).unwrap_err().to_string();
        assert!(refused.contains("prober.subscribed: it needs transport websocket"), "{refused}");
    }
}

#[test]
fn a_few_publish_and_everybody_receives() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let Scenario::Chat { interval_ms, payload_bytes, .. } = CHAT else { unreachable!() };
        let scenario = Scenario::Chat {
            interval_ms,
            payload_bytes,
            payload_bytes_max: None,
            publishers: Some(2),
            in_bursts: false,
        };
        let result = run(&Plan { loops: 3, ..plan(server.address, transport, 5, scenario) });
        assert_whole(&result, 6, 5, transport);
        assert_eq!((result.latency_own.count(), result.latency_last.count()), (6, 6), "{transport}");
        let (publishers, all) = (result.requests_publishers, result.requests);
        match transport {
            Transport::WebSocket | Transport::WebSocketPolling => assert_eq!((publishers, all), (0, 0), "{transport}"),
            Transport::Sse | Transport::HttpStreaming => {
                // What was due in the warm-up may be sent when it is over, one of each publisher, and so with the load.
                let posts = server.published().len() as u64;
                assert!((6..=8).contains(&posts), "{transport}: {posts}");
                assert!((1..=posts).contains(&publishers) && publishers == all, "{transport}: {publishers} of {all}");
            }
            Transport::LongPolling | Transport::Polling => {
                assert!(publishers >= 6 && publishers < all, "{transport}: {publishers} of {all}");
            }
        }
        let sources: std::collections::HashSet<u32> =
            server.published().iter().map(|data| Stamp::find(data.as_bytes()).unwrap().source).collect();
        assert_eq!(sources, [0, 1].into(), "the first two over {transport}");
    }
}

#[test]
fn what_polls_bring_and_what_is_asked_in_silence_is_counted() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let Scenario::Chat { interval_ms, payload_bytes, .. } = CHAT else { unreachable!() };
        let scenario = Scenario::Chat {
            interval_ms,
            payload_bytes,
            payload_bytes_max: None,
            publishers: Some(1),
            in_bursts: false,
        };
        let own = plan(server.address, transport, 5, scenario);
        let result = run(&Plan { phases: Phases { idle_ms: 200, ..own.phases.clone() }, ..own });
        assert_whole(&result, 3, 5, transport);
        let (polls, empty) = (result.polls, result.polls_empty);
        match transport {
            // Of fifteen polls of a client, three bring one publication each, and one may bring what the warm-up published.
            Transport::Polling | Transport::WebSocketPolling => {
                assert!(polls > 20 && empty < polls && polls - empty <= 20, "{transport}: {empty} of {polls}");
            }
            Transport::LongPolling => assert!(polls >= 10 && empty == 0, "{transport}: {empty} of {polls}"),
            _ => assert_eq!((polls, empty), (0, 0), "{transport}"),
        }
        assert_eq!(result.requests_idle > 10, transport == Transport::Polling, "{transport}: {}", result.requests_idle);
        let whole = result.bytes_whole;
        assert!((1..whole.up.total() + whole.down.total()).contains(&result.bytes_opening), "{transport}");
        if transport == Transport::WebSocket {
            assert!(result.bytes_opening > whole.up.heads + whole.down.heads, "nothing is asked later");
        }
    }
}

#[test]
fn varied_data_is_the_same_however_many_loops_send_it() {
    let published = |loops, seed| {
        let server = NativeServer::start(None);
        let scenario = Scenario::Chat {
            interval_ms: 50,
            payload_bytes: 40,
            payload_bytes_max: Some(200),
            publishers: None,
            in_bursts: false,
        };
        let result = run(&Plan { loops, seed, ..plan(server.address, Transport::WebSocket, 5, scenario) });
        assert_whole(&result, 30, 5, loops);
        let texts = server.published().into_iter().map(|data| {
            let stamp = Stamp::find(data.as_bytes()).unwrap();
            let text = String::from_utf8(stamp.encode().to_vec()).unwrap();
            ((stamp.source, stamp.sequence), data.replace(&text, ""))
        });
        texts.collect::<std::collections::BTreeMap<_, _>>()
    };
    let one = published(1, 7);
    assert!(one.values().any(|text| text.len() > 120) && one.values().any(|text| text.len() < 120), "{one:?}");
    assert_eq!(one, published(3, 7));
    assert_ne!(one, published(1, 8));
}

#[test]
fn a_post_opens_a_connection_and_a_cut_another() {
    let opened = |transport, warm_up_ms, cut_after| {
        let server = NativeServer::start(cut_after);
        let base = plan(server.address, transport, 3, CHAT);
        let result = run(&Plan { phases: Phases { warm_up_ms, ..base.phases.clone() }, ..base });
        (result.connections_opened, result.reconnects)
    };
    assert_eq!(opened(Transport::WebSocket, 0, None), (0, 0));
    assert_eq!(opened(Transport::Sse, 0, None), (3, 0), "with the first publications");
    assert_eq!(opened(Transport::Sse, 1_000, None), (0, 0), "which were sent in the warm-up");
    let (opened, reconnects) = opened(Transport::WebSocket, 0, Some(3));
    assert!(opened > 0 && opened <= reconnects, "{opened} {reconnects}");
}

#[test]
fn the_list_of_users_is_a_request_for_every_poll() {
    for (transport, asks) in [(Transport::Polling, true), (Transport::LongPolling, false), (Transport::Sse, false)] {
        let server = NativeServer::start(None);
        let result = run(&Plan { user_list: true, ..plan(server.address, transport, 3, CHAT) });
        assert_whole(&result, 9, 3, transport);
        assert!(result.errors.is_empty(), "{transport} {:?}", result.errors);
        let polls = |channel| server.asked().iter().filter(|a| a.what == "GET /poll" && a.channel == channel).count();
        let (messages, users) = (polls("a"), polls("a.users"));
        // A client may end the run between the two.
        let expected = if asks { messages - 3..=messages } else { 0..=0 };
        assert!(expected.contains(&users), "{transport}: {users} lists for {messages} polls");
        if asks {
            // In the load phase alone: 300 ms at 20 ms, and 9 messages.
            let (counted, asked) = (result.requests as usize, messages + users + 9);
            assert!(counted > messages.min(users) / 4 && counted <= asked.min(3 * 16 * 2 + 9), "{counted} of {asked}");
        }
    }
    let server = NativeServer::start(None);
    let plan = Plan { user_list: true, ..plan(server.address, Transport::WebSocketPolling, 3, CHAT) };
    let error = Threads::run(&plan, None, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("user_list") && error.contains("websocket-polling"), "{error}");
}

#[test]
fn requests_look_like_a_browsers() {
    for transport in Transport::ALL {
        let server = NativeServer::start(None);
        let result = run(&Plan { headers: RequestHeaders::Browser, ..plan(server.address, transport, 2, CHAT) });
        assert_whole(&result, 6, 2, transport);
        for asked in server.asked() {
            assert!(asked.head.contains("\r\nUser-Agent: Mozilla/5.0 "), "{transport}: {}", asked.head);
            assert!(asked.head.contains("\r\nAccept-Encoding: identity\r\n"), "{transport}: {}", asked.head);
            let is_post = asked.what == "POST /publish";
            let has_origin = is_post || transport.is_bidirectional();
            assert_eq!(asked.head.contains("\r\nOrigin: http://127.0.0.1:"), has_origin, "{}", asked.head);
        }
        assert!(!server.asked().is_empty());
    }
}

#[test]
fn a_cut_connection_resumes_without_loss() {
    for transport in [Transport::WebSocket, Transport::Sse, Transport::HttpStreaming] {
        let server = NativeServer::start(Some(7));
        let result = run(&plan(server.address, transport, 5, CHAT));
        assert_whole(&result, 15, 5, transport);
        assert!(result.reconnects >= 5, "{transport} {}", result.reconnects);
        assert!(result.errors.iter().map(|error| error.count).sum::<u64>() >= 5, "{transport} {:?}", result.errors);
    }
}

#[test]
fn an_echo_comes_back_to_its_sender() {
    for transport in [Transport::WebSocket, Transport::Sse] {
        let server = NativeServer::start(None);
        let scenario = Scenario::Echo { interval_ms: 30, payload_bytes: 22, streamed: false };
        let result = run(&with_prober(plan(server.address, transport, 5, scenario), ProberPath::Http));
        assert_whole(&result, 50, 1, transport);
        assert_eq!(result.latency_first.count(), 0);
        assert_eq!(result.latency_own, result.latency, "every answer is one's own");
    }
}

#[test]
fn a_closed_loop_answers_each_request_once() {
    for transport in [Transport::WebSocket, Transport::LongPolling] {
        let server = NativeServer::start(None);
        let result = run(&plan(server.address, transport, 3, Scenario::Request { payload_bytes: 50 }));
        assert!(result.published >= 3, "{transport}");
        assert_whole(&result, result.published, 1, transport);
        assert_eq!(result.latency_own.count(), 0, "there is nothing to tell apart");
    }
}

#[test]
fn the_collector_gets_what_goes_up() {
    for transport in [Transport::WebSocketPolling, Transport::HttpStreaming] {
        let server = NativeServer::start(None);
        let scenario = Scenario::Upstream { interval_ms: 30, payload_bytes: 100 };
        let result = run(&plan(server.address, transport, 5, scenario));
        assert_whole(&result, 50, 1, transport);
        assert_eq!(result.connect.count(), 5, "the collector is no client");
        assert_eq!(result.latency_own.count(), 0, "what the collector receives is nobody's own");
    }
}

#[test]
fn the_worker_speaks_lines_of_json() {
    let server = NativeServer::start(None);
    let base = plan(server.address, Transport::WebSocket, 2, Scenario::Idle);
    let plan = Plan { phases: NO_TIME, ..base };
    let (input, mut orders) = std::io::pipe().unwrap();
    let (messages, output) = std::io::pipe().unwrap();
    let worker = std::thread::spawn(move || serve(input, output, None, Allowed::default()).unwrap());
    let mut order = |order: &Order| writeln!(orders, "{}", serde_json::to_string(order).unwrap()).unwrap();
    let mut messages = BufReader::new(messages).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    order(&Order::Prepare { plan: Box::new(plan), segment: Segment::whole(2) });
    assert!(matches!(messages.next(), Some(Message::Prepared)));
    order(&Order::Connect { origin_ns: monotonic_ns() });
    let is_full = |message: &Message| matches!(message, Message::State(state) if state.subscribed == 2);
    assert!(messages.any(|message| is_full(&message)));
    order(&Order::Begin { idle_ns: monotonic_ns() });
    order(&Order::Finish { after_ns: monotonic_ns() });
    let mut told = 0;
    let (part, seconds) = messages
        .find_map(|message| match message {
            Message::Done { part, seconds } => Some((part, seconds)),
            Message::Second { .. } => {
                told += 1;
                None
            }
            _ => None,
        })
        .unwrap();
    assert_eq!((part.connect.count(), seconds), (2, told));
    assert!(worker.join().unwrap());

    for bad in ["{}", "", "{\"order\":\"begin\",\"idle_ns\":1}"] {
        let mut output = Vec::new();
        let is_done = serve(bad.as_bytes(), &mut output, None, Allowed::default()).unwrap();
        // Whoever closes the pipe at once wanted nothing.
        assert_eq!(is_done, bad.is_empty());
        assert_eq!(String::from_utf8(output).unwrap().contains("\"message\":\"failed\""), !is_done, "{bad}");
    }
}

#[test]
fn several_workers_measure_what_one_does() {
    for transport in [Transport::WebSocket, Transport::LongPolling] {
        let server = NativeServer::start(None);
        let results = [1, 2, 3].map(|workers| {
            let result = run(&Plan { workers, loops: 3, ..plan(server.address, transport, 7, CHAT) });
            assert_whole(&result, 21, 7, format_args!("{transport}, {workers} workers"));
            assert_eq!(result.connect.count(), 7);
            [result.latency_first.count(), result.latency_last.count(), result.latency_own.count()]
        });
        assert_eq!(results, [[21; 3]; 3]);
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let base = plan(([127, 0, 0, 1], 1).into(), Transport::Sse, 3, Scenario::Idle);
    let plan = Plan { phases: Phases { connect_ms: 1_000, ..NO_TIME }, ..base };
    let error = Threads::run(&plan, None, &mut |_| ()).unwrap_err();
    assert!(matches!(error, RunError::Load(LoadError::NotConnected { connected: 0, clients: 3, .. })), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}
