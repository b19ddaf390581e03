//! A microphone node on Nordic's nRF52840 DK: a PDM microphone at P0.30 (clock) and
//! P0.31 (data), and the link to the hub on the debugger's serial port (1 Mbaud).
//! Logs go to the debug probe (defmt over RTT).
#![no_std]
#![no_main]

use defmt_rtt as _;
use earwitness_api::node::BLOCK_SAMPLES;
use embassy_executor::Spawner;
use embassy_nrf::buffered_uarte::{self, BufferedUarte};
use embassy_nrf::pdm::{self, Frequency, Pdm, SamplerState};
use embassy_nrf::peripherals::{PDM, UARTE0};
use embassy_nrf::{bind_interrupts, uarte};
use live::Recorder;
use panic_probe as _;
use static_cell::ConstStaticCell;

bind_interrupts!(struct Interrupts {
    PDM => pdm::InterruptHandler<PDM>;
    UARTE0 => buffered_uarte::InterruptHandler<UARTE0>;
});

static RECEIVED: ConstStaticCell<[u8; 64]> = ConstStaticCell::new([0; 64]);
static SENDING: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let chip = embassy_nrf::init(Default::default());

    let mut config = pdm::Config::default();
    // Over the default ratio of 80: 16 kHz.
    config.frequency = Frequency::_1280k;
    let microphone = Pdm::new(chip.PDM, Interrupts, chip.P0_30, chip.P0_31, config);
    spawner.spawn(record(microphone).expect("it is spawned once"));

    let mut config = uarte::Config::default();
    config.baudrate = uarte::Baudrate::Baud1m;
    let link = BufferedUarte::new(
        chip.UARTE0,
        chip.TIMER0,
        chip.PPI_CH0,
        chip.PPI_CH1,
        chip.PPI_GROUP0,
        chip.P0_08,
        chip.P0_06,
        Interrupts,
        config,
        RECEIVED.take(),
        SENDING.take(),
    );
    let (receiver, sender) = link.split();
    live::run(nrf_pac::FICR.deviceid(0).read(), receiver, sender).await
}

#[embassy_executor::task]
async fn record(mut microphone: Pdm<'static>) {
    let mut buffers = [[0; BLOCK_SAMPLES]; 2];
    let mut recorder = Recorder::default();
    let ended = microphone
        .run_task_sampler(&mut buffers, |&samples| {
            recorder.push(samples);
            SamplerState::Sampled
        })
        .await;
    defmt::panic!("the microphone stopped: {}", ended);
}
