//! The back end on its own.

use crate::feed_server::each_text;
use pushlab_fleet::backend::{Announcement, BackEnd, BackEndError};
use pushlab_wire::stamp::Stamp;
use pushlab_wire::websocket::{Opcode, Role, encode, handshake};
use pushlab_workload::pacing::Pacing;
use pushlab_workload::payload::Form;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn start(announcement: Announcement) -> Result<BackEnd, BackEndError> {
    BackEnd::start(TcpListener::bind("127.0.0.1:0").unwrap(), announcement)
}

fn connect(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut request = Vec::new();
    handshake::encode_request(&mut request, "back-end", path, [3; 16]);
    stream.write_all(&request).unwrap();
    let mut tail = [0; 4];
    while tail != *b"\r\n\r\n" {
        tail.rotate_left(1);
        stream.read_exact(&mut tail[3..]).unwrap();
    }
    stream
}

fn wait_for_subjects(back_end: &BackEnd, subjects: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while back_end.subjects() != subjects {
        assert!(Instant::now() < deadline, "{} subjects", back_end.subjects());
        std::thread::yield_now();
    }
}

#[test]
fn a_controllers_go_feeds_every_subject() {
    let back_end = start(Announcement { interval_us: 500, count: 40, form: Form::fixed(60) }).unwrap();
    let subjects: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = connect(back_end.address(), "/");
            std::thread::spawn(move || {
                let mut texts = Vec::new();
                let mut reader = stream.try_clone().unwrap();
                each_text(&mut reader, Role::Client, |text| {
                    texts.push(text.to_owned());
                    if texts.len() == 42 {
                        stream.shutdown(std::net::Shutdown::Both).unwrap();
                    }
                    None
                });
                stream.flush().unwrap();
                texts
            })
        })
        .collect();
    wait_for_subjects(&back_end, 2);
    let mut controller = connect(back_end.address(), "/control");
    let mut go = Vec::new();
    encode(&mut go, Opcode::Text, b"[\"go\"]", Some([1, 2, 3, 4]));
    controller.write_all(&go).unwrap();
    let report = back_end.wait_for_report(Duration::from_secs(20)).unwrap();
    assert_eq!((report.scheduled, report.published, report.unsent, report.cuts), (40, 40, 0, 0));
    assert_eq!(report.lateness.count(), 80);
    assert_eq!(report.seconds.iter().sum::<u64>(), 40);
    for subject in subjects {
        let texts = subject.join().unwrap();
        assert_eq!(texts[0], r#"["info",{"interval_us":500,"count":40,"payload_bytes":60}]"#);
        assert_eq!((texts[1].as_str(), texts.len()), ("[\"getReady\"]", 42));
        for (sequence, text) in texts[2..].iter().enumerate() {
            assert_eq!(text.len(), 60);
            assert_eq!(Stamp::find(text.as_bytes()).unwrap().sequence as usize, sequence);
        }
    }
    back_end.stop().unwrap();
}

#[test]
fn a_subject_that_does_not_read_leaves_publications_unsent() {
    let back_end = start(Announcement { interval_us: 1, count: 1, form: Form::fixed(100_000) }).unwrap();
    let _silent = connect(back_end.address(), "/");
    wait_for_subjects(&back_end, 1);
    let now = pushlab_os::clock::monotonic_ns();
    let pacing = Pacing { count: 500, ..Pacing::endless(now, 1_000, 1) };
    back_end.begin(pushlab_fleet::backend::Feed { pacing, count_from: 0, origin_ns: now });
    assert!(back_end.wait_for_report(Duration::from_millis(300)).is_none());
    let report = back_end.stop().unwrap();
    assert!(report.unsent > 0, "50 MB do not fit into a socket");
    assert_eq!((report.scheduled, report.published + report.unsent), (500, 500));
}

#[test]
fn sizes_and_intervals_that_cannot_be_are_refused() {
    let bad = |interval_us, payload_bytes| {
        start(Announcement { interval_us, count: 1, form: Form::fixed(payload_bytes) }).unwrap_err()
    };
    assert!(matches!(bad(1, 21), BackEndError::Payload(_)));
    assert!(matches!(bad(0, 22), BackEndError::NoInterval));
}
